"""Sets Django up when it is imported, in a process that runs handlers."""

import django

django.setup()
