"""The learn page: chapters in the order of the trip, and an endless quiz. The engine marks both."""

from app.lessons.chapters import CHAPTERS, chapter_payload
from app.lessons.quiz import quiz_payload

__all__ = ["CHAPTERS", "chapter_payload", "quiz_payload"]
