"""What is told as stored has been acknowledged by the bucket; what is here is a copy, and never the truth.

`address` reads s3://, gs:// and az://, `bucket` asks the server, and `mirror` keeps a folder that has what
the bucket has. `object_layout` puts that folder in the place of a store's, and `object_leases` claims trials
by objects that only one can create.
"""
