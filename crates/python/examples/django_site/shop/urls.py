"""The views of the shop, and the admin."""

from django.contrib import admin
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from shop.models import Order
from shop.tasks import Confirmation, confirm, invoice
from trunkline.django import enqueue_on_commit
from trunkline.transaction import queue


@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    made = Order.objects.create(mail=request.GET["mail"])
    id = queue(connection, confirm).enqueue(Confirmation(made.pk))  # with the order, or not at all
    enqueue_on_commit(invoice, Confirmation(made.pk))  # after the commit; see docs/django.md
    if "fail" in request.GET:
        raise ValueError("the request fails after both")
    return JsonResponse({"order": made.pk, "message": id})


urlpatterns = [path("order", order), path("admin/", admin.site.urls)]
