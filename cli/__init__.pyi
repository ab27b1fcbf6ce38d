from .app import command_line as command_line
from .machine_settings import SETTING_NAMES as SETTING_NAMES
from .machine_settings import SettingsError as SettingsError
from .machine_settings import load_settings as load_settings
from .output import SCHEMA as SCHEMA
from .pages import PAGES as PAGES
