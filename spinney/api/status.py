"""What the statuses of several kinds have in common."""

from datetime import datetime
from typing import Annotated

from spinney.api.kinds import Column
from spinney.meta.records import Field, Record

AGE = Column(
    name="Age", path=".metadata.creationTimestamp", type="date", doc="How long it has been there."
)
MIN_BREACHED = Column(
    name="MinBreached",
    path='.status.conditions[?(@.type=="MinAvailableBreached")].status',
    type="string",
    priority=1,
    doc="Whether fewer than minAvailable are ready.",
)


class LastError(Record):
    """Something that went wrong when the object was last looked at."""

    code: Annotated[str, Field("A word for programs.", required=True)]
    description: Annotated[str, Field("A sentence for people.", required=True)]
    observed_at: Annotated[datetime, Field("When it was seen.", required=True)]
