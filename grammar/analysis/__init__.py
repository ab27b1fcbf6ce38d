"""Analysis of a recipe: the costs, the memory and the reach of its model.

`analyse` walks the recipe's tree and returns the parts with their costs. `measured_costs` measures costs from
modules and caches them.
"""
