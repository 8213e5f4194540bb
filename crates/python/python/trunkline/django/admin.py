"""The admin's pages of each queue's dead letters, which can be replayed or discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from trunkline.django import dead_letters
from trunkline.django.models import DeadLetter
from trunkline.django.place import application

#: Verbs, each with the permission that it needs and the words that the page shows afterwards.
VERBS = {"replay": ("change", "due again"), "discard": ("delete", "discarded")}


def _number(text: str) -> int | None:
    """Returns an id, or ``None`` if the text is not an id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[DeadLetter]
else:
    _Admin = admin.ModelAdmin


@admin.register(DeadLetter)
class DeadLetterAdmin(_Admin):
    """The admin's page of dead letters. It has no forms to add or edit one."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Returns false, because only Trunkline makes dead letters."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Shows a page of a queue's dead letters, or replays or discards the chosen ones and shows
        the page again.

        Raises `PermissionDenied` without the right to view, to replay (`change`) or to discard
        (`delete`).
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        alias = getattr(application(), "alias", "default")
        counts = dead_letters.counts(alias)
        queue = request.GET.get("queue") or next((one.queue for one in counts if one.dead), counts[0].queue if counts else "")
        if request.method == "POST":
            self._act(request, alias, queue)
            return HttpResponseRedirect(request.get_full_path())
        after = _number(request.GET.get("after", "")) or 0
        found = dead_letters.page(alias, queue, after) if queue in {one.queue for one in counts} else []
        shown, is_more = found[: dead_letters.PAGE], len(found) > dead_letters.PAGE
        model: Any = self.model
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": "Dead letters",
            "opts": model._meta,  # Django's own templates receive it under this name
            "counts": counts,
            "queue": queue,
            "shown": shown,
            "next": shown[-1].id if is_more else None,
            "may_replay": self.has_change_permission(request),
            "may_discard": self.has_delete_permission(request),
        }
        return TemplateResponse(request, "trunkline/dead_letters.html", context)

    def _act(self, request: HttpRequest, alias: str, queue: str) -> None:
        verb = request.POST.get("verb", "")
        if verb not in VERBS:
            return
        right, said = VERBS[verb]
        if not getattr(self, f"has_{right}_permission")(request):
            raise PermissionDenied
        ids = [number for id in request.POST.getlist("id") if (number := _number(id)) is not None]
        count = getattr(dead_letters, verb)(alias, queue, ids)
        messages.success(request, f"{count} of {len(ids)} {said}")
