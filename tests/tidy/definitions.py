"""What a C++ file defines at the scope of a named namespace: types and inline variables.

A reader of one language by one house style, and no compiler: it follows brackets, so it needs code
whose comments and literals are blank. What it cannot tell it leaves out.
"""
import re

PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*((?:\w|::)*)\s*$")
TYPE = re.compile(r"(?:^|[\s>])(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[.*?\]\]\s*)*(\w+)"
                  r"(?!\s*(?:<|::|\w*\s*::))")
INLINE = re.compile(r"\binline\b")
LAST_NAME = re.compile(r"(\w+)\s*$")
SPACE = re.compile(r"\s*")
SIGN = re.compile(r"operator\s*(?:\(\)|[^\s\w(]+)|[<>(){}\[\]=;]")
END = re.compile(r"[;(){}\[]")
MORE = re.compile(r"\s*[,{]")  # members of a constructor, before its body
PAIRS = {"(": ")", "{": "}", "[": "]"}
BRACKETS = {opened: re.compile(f"[\\{opened}\\{closed}]") for opened, closed in PAIRS.items()}


def blanked(match):
    return re.sub(r"[^\n]", " ", match[0])


def closing(code, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for found in BRACKETS[code[at]].finditer(code, at):
        depth += 1 if found[0] == code[at] else -1
        if depth == 0:
            return found.end()
    return len(code)


def head_end(code, at):
    """Where the first of `( { [ = ; }` stands that is no part of a template's arguments, or of an attribute."""
    angles = 0
    while found := SIGN.search(code, at):
        sign, here = found[0], found.start()
        at = found.end()
        if sign == "<":
            angles += 1
        elif sign == ">":
            angles = max(0, angles - (code[here - 1] != "-"))
        elif sign in PAIRS and (angles > 0 or code.startswith("[[", here)):
            at = closing(code, here)
        elif angles == 0 and sign in "({[=;}":
            return here
    return len(code)


def statement_end(code, at, function):
    """Behind the `;`, or behind the body of a function."""
    while found := END.search(code, at):
        sign, here = found[0], found.start()
        if sign == ";":
            return found.end()
        if sign == "}":
            return here
        at = closing(code, here)
        if function and sign == "{" and not MORE.match(code, at):
            return at
    return len(code)


def definitions(code):
    """(namespace, name, offset) of each type and each inline variable; nothing of unnamed namespaces."""
    code = PREPROCESSOR.sub(blanked, code)
    spaces, at = [], 0
    while at < len(code):
        at = SPACE.match(code, at).end()
        if at >= len(code):
            return
        if code[at] == "}":
            if spaces:
                spaces.pop()
            at += 1
            continue
        end = head_end(code, at)
        head, sign = code[at:end], code[end:end + 1]
        if sign == "{" and (opened := NAMESPACE.search(head)):
            spaces.append(opened[1])
            at = end + 1
            continue
        name = None
        if sign == "{" and (found := TYPE.search(head)):
            name = found[1]
        elif sign in ("=", "{", "[", ";") and INLINE.search(head) and "operator" not in head:
            found = LAST_NAME.search(head)
            name = found[1] if found else None
        if name and all(spaces):
            yield "::".join(spaces), name, at + head.rindex(name)
        at = statement_end(code, end, sign == "(")
