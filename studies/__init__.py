"""What is asked: a study file becomes trials before anything runs, and tables after."""
