"""Costs, memory and reach of a model, computed from its recipe.

`analyse` walks the recipe's tree and returns the parts with their costs. `measured_costs` measures costs from
modules and caches them.
"""
