"""A notebook without a kernel: its cells run as IPython runs them."""

import ast
import linecache
from hashlib import sha256


class Notebook:
    """Cells that share their globals. The text of each is in linecache, under a name made from it."""

    def __init__(self):
        self.globals = {"__name__": "__main__"}

    def run(self, *cells):
        """Run cells, each statement by itself."""
        for text in cells:
            name = f"/tmp/ipykernel_1/{int(sha256(text.encode()).hexdigest()[:8], 16)}.py"
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            for statement in ast.parse(text).body:
                exec(compile(ast.Module([statement], []), name, "exec"), self.globals)
