"""OpenAI Realtime (GA) events: names, fields and ids are OpenAI's, audio is bytes."""

from orchestration.session.client_events import *  # noqa: F403
from orchestration.session.server_events import *  # noqa: F403
from orchestration.session.server_events import _OfPart as _OfPart
