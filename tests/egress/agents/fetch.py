"""Fetches a page in one of Python's ways.

    fetch.py requests|urllib|direct URL
"""
import http.client
import sys
import urllib.parse
import urllib.request


def fetch(way, url):
    if way == "requests":
        import requests
        answer = requests.get(url, timeout=20)
        answer.raise_for_status()
        return answer.text
    if way == "urllib":
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.read().decode()
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=20)
    connection.request("GET", parts.path)
    return connection.getresponse().read().decode()


try:
    print(fetch(*sys.argv[1:]))
except Exception as error:  # pylint: disable=broad-except
    sys.exit(f"{sys.argv[2]}: {type(error).__name__}: {error}")
