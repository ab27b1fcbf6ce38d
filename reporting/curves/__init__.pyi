from .cell_figure import mean_interval as mean_interval
from .curve import Axis as Axis
from .curve import Bar as Bar
from .curve import Line as Line
from .curve import Panel as Panel
from .curve import Point as Point
from .curve import build_curve as build_curve
from .figure_format import FigureFormat as FigureFormat
