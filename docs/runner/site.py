"""Prepares the guide's links for mdBook: a README is the index of its folder, a file outside the guide is in the repository, and a picture
outside the guide becomes a part of its page."""

import base64
import json
import pathlib
import re
import sys

TYPES = {".svg": "image/svg+xml", ".webp": "image/webp", ".png": "image/png"}

if sys.argv[1:2] == ["supports"]:
    sys.exit(sys.argv[2] != "html")

context, book = json.load(sys.stdin)
docs = pathlib.Path(context["root"]).resolve()
repository = context["config"]["output"]["html"]["git-repository-url"]


def lead(page: pathlib.Path, link: re.Match[str]) -> str:
    text, path, place = link[1], link[2], link[3] or ""
    if "://" in path:
        return link[0]
    target = (page.parent / path).resolve()
    if target.is_relative_to(docs):
        path = re.sub(r"README\.md$", "index.md", path)
    elif text.startswith("!"):
        path = f"data:{TYPES[target.suffix]};base64,{base64.b64encode(target.read_bytes()).decode()}"
    else:
        kind = "tree" if target.is_dir() else "blob"
        path = f"{repository}/{kind}/main/{target.relative_to(docs.parent).as_posix()}"
    return f"{text}({path}{place})"


def prepare(items: list[object]) -> None:
    for chapter in (item["Chapter"] for item in items if isinstance(item, dict) and "Chapter" in item):
        page = docs / chapter["source_path"]
        # Blocks of code are every second part.
        parts = re.split(r"(^```.*?^```)", chapter["content"], flags=re.MULTILINE | re.DOTALL)
        parts[::2] = (re.sub(r"(!\[[^\]]*\]|\])\(([^)#\s]+)(#[^)]*)?\)", lambda link: lead(page, link), part) for part in parts[::2])
        chapter["content"] = "".join(parts)
        prepare(chapter["sub_items"])


prepare(book["items"])
json.dump(book, sys.stdout)
