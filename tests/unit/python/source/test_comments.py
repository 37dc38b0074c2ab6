"""The comments of a text by line."""

from __future__ import annotations

import tokenize

import pytest

from trainshift.python.source.comments import Comment, comments_by_line, read_comments

TEXT = "\ufeff# first\nx = '# none'  # beside\r\nif x:\r    # inside\n    pass\n"


def test_comments_have_their_lines_and_columns() -> None:
    assert comments_by_line(TEXT) == {
        1: Comment(1, 0, "# first"),
        2: Comment(2, 14, "# beside"),
        4: Comment(4, 4, "# inside"),
    }
    assert comments_by_line("x = 1\n") == {}


def test_comments_come_as_far_as_the_text_is_python() -> None:
    comments = read_comments("# one\nx = (  # two\n")
    assert next(comments).text == "# one"
    with pytest.raises(tokenize.TokenError):
        list(comments)


@pytest.mark.parametrize(
    "text",
    [
        "x = '''\n# no\n'\\''' # no''' # yes\n",
        'x = """a"" # no"""  # yes\ny = r"\\" # no"  # yes too\n',
        "x = '\\\n# no'  # yes\n# last",
        "x = \"'\"  # '\ny = ''  # \"\n",
        'x = f\'{1:#x}\'  # yes\ny = f"""{\n2}# no"""# yes\n',
        "x = '''\\\\'''  # ' yes\nif x: # one\n\n\t# two\n\tpass #three  \n",
        "x = 1 \\\n  + 2  # yes\n\x0c# yes\n",
        "#\n##\nx = rb'#' b\"#\" # '''\n",
    ],
)
def test_comments_by_line_are_those_of_the_tokenizer(text: str) -> None:
    compile(text, "text", "exec")
    assert comments_by_line(text) == {each.line: each for each in read_comments(text)} != {}
