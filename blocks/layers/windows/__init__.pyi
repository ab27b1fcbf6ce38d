from .pieces import window_products as window_products
