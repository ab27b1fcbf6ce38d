"""A recipe is shown as a tree with its costs, as a picture, or beside another."""
