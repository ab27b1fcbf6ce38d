"""Results for the user's own paper.

One part writes tables, figures and numbers of several studies as files that LaTeX includes. Another part
checks the paper's text against them.
"""
