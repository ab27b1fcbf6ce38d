"""A run takes what a study lacks to this process or to Ray, in any order, and survives any crash."""
