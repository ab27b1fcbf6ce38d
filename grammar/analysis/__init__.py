"""Analysis of a recipe: parameters, FLOPs, training memory and reach of its model.

The reach is how many tokens on the left and on the right can affect an output. `analyse` walks the recipe's
tree and returns the parts with their costs. `measured_costs` measures costs from modules and caches them.
"""
