"""Costs, memory and reach of a model, from its recipe.

`analyse` walks the recipe's tree and has the parts that it finds, and `measured_costs` remembers
what is measured from modules.
"""
