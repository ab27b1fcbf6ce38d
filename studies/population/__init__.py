"""A member of a population is a training whose optimizer's settings change from generation to generation.

Population-based training (Jaderberg et al. 2017). `reader` finds what a study says of it, and what cannot be
searched so; `courses` has the values of a dimension over the generations, and the settings that these make;
`exploration` draws them and changes them, and `generations` follow from how the members before have ended.
"""

from .courses import course_settings, read_course, write_courses
from .generations import Generation, PopulationMember, breed
from .reader import check_population, check_shown, expand_generations

__all__ = [
    "Generation",
    "PopulationMember",
    "breed",
    "check_population",
    "check_shown",
    "course_settings",
    "expand_generations",
    "read_course",
    "write_courses",
]
