"""Finds the `offprof` command lines in a page of Markdown, and the exit status that the page says they end with.

A command stands in a code block (fenced, or indented by four blanks), on a line that begins with `offprof` or `$ offprof`; in
a block with prompts only lines with a prompt are commands, and the lines below each are output that the page quotes. A backslash
at a line's end joins the next one.
A command is expected to end with status 0, unless

- its comment says otherwise: `offprof gate ... # exit status 1`, or
- it is the last of its block, and the paragraph before ends with `exit status 3:`.

A comment `# needs a GPU` marks a command that most machines cannot run.

Commands within prose, in backticks, are found too: `mentions`.
"""

import re
from dataclasses import dataclass, replace

COMMAND = re.compile(r"offprof [a-z]+(\s|$)")
STATUS = re.compile(r"exit status (\d+)")
NEEDS_GPU = "needs a GPU"


@dataclass(frozen=True)
class Command:
    page: str
    line: int  # in the page, from 1
    text: str
    status: int
    needs_gpu: bool = False
    quoted: tuple = ()  # lines of its output, (number, text) each


@dataclass(frozen=True)
class Block:
    before: str  # the line of prose that it follows
    lines: list  # of (number, text)


def blocks(text):
    """Yields the code blocks of a page."""
    block: list[tuple[int, str]] = []
    before, fence, after_blank = "", None, True
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if fence is not None:
            if line.strip().startswith(fence):
                yield Block(before, block)
                before, block, fence = "", [], None
            else:
                block.append((number, line))
            continue
        if line.startswith("    ") and (block or after_blank):
            block.append((number, line[4:]))
            continue
        if block and line.strip():
            yield Block(before, block)
            before, block = "", []
        if line.strip().startswith("```"):
            fence, block = "```", []
        elif line.strip():
            before = line.strip()
        after_blank = not line.strip()
    if block:
        yield Block(before, block)


def joined(lines):
    """The lines of a block, each with those that a backslash joins to it."""
    result: list[tuple[int, str]] = []
    for number, line in lines:
        if result and result[-1][1].endswith("\\"):
            result[-1] = (result[-1][0], result[-1][1][:-1].rstrip() + " " + line.strip())
        else:
            result.append((number, line.strip()))
    return result


def cut_comment(line):
    """The command and its comment. A `#` within quotes or a word begins none."""
    quote = None
    for at, letter in enumerate(line):
        if quote:
            quote = None if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and line[at - 1 : at] == " ":
            return line[:at].rstrip(), line[at + 1 :]
    return line, ""


def commands_of_block(page, block):
    lines = joined(block.lines)
    has_prompts = any(line.startswith("$ ") for _, line in lines)
    found = []
    for number, line in lines:
        typed = line.removeprefix("$ ")
        is_command = COMMAND.match(typed) and (typed != line or not has_prompts)
        if is_command:
            text, comment = cut_comment(typed)
            said = STATUS.search(comment)
            found.append(Command(page, number, text, int(said.group(1)) if said else 0, NEEDS_GPU in comment))
        elif has_prompts and found:
            if typed != line:  # a command that is not of offprof; its output is not compared
                break
            found[-1] = replace(found[-1], quoted=(*found[-1].quoted, (number, line)))
    said = re.search(r"exit status (\d+):$", block.before)
    if found and said:
        found[-1] = replace(found[-1], status=int(said.group(1)))
    return found


def commands(page, text):
    """Every command of a page's code blocks, in order."""
    return [command for block in blocks(text) for command in commands_of_block(page, block)]


def mentions(text):
    """Commands within prose, each once, in order."""
    in_blocks = {number for block in blocks(text) for number, _ in block.lines}
    prose = "\n".join(line for number, line in enumerate(text.splitlines(), 1) if number not in in_blocks)
    found = re.findall(r"`(offprof [a-z][^`]*)`", prose)
    return list(dict.fromkeys(" ".join(one.split()) for one in found))
