from .http_server import Access as Access
from .http_server import PageServer as PageServer
from .http_server import ServeError as ServeError
from .study_now import BegunTrial as BegunTrial
from .study_now import StudyNow as StudyNow
from .trials import metric_words as metric_words
