"""The six agents of the tests: where they are, and how each is driven by a model on the loopback.

They are the real ones, pinned in pins/, installed by scripts/install-agents. A missing one is an error,
never a skip.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "egress"))
import inside  # pylint: disable=wrong-import-position

AGENTS = os.path.join(PROJECT, "build", "tools", "agents")
PROGRAMS = os.path.join(AGENTS, "node_modules", ".bin")
NODE = os.path.dirname(os.path.dirname(inside.NODE))
SEARCH_PATH = f"{PROGRAMS}:{NODE}/bin:{inside.SEARCH_PATH}"

PACKAGES = {
    "claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "copilot": "@github/copilot",
    "gemini": "@google/gemini-cli", "opencode": "opencode-ai", "pi": "@mariozechner/pi-coding-agent",
}
KEY = "not-a-key"


def version(name):
    """The pinned version of an agent."""
    with open(os.path.join(HERE, "pins", "package.json"), encoding="utf-8") as file:
        return json.load(file)["dependencies"][PACKAGES[name]]


def offer(place):
    """Puts the agents on the search path of whoever runs something in the place."""
    place.environment["PATH"] = SEARCH_PATH


def contained(name, *arguments):
    """Options and command of a contained run of an agent."""
    return ["-p", name], [name, *arguments]


# -- how a model on the loopback drives them ----------------------------------------------------------
#
# Each function takes the model's address and returns arguments, environment, and the files that the
# agent finds in its workspace. Every agent may do anything without asking: what stops it is glove.

def claude(model):
    return ["-p", "go", "--allowedTools", "Bash,Read,Write"], {
        "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}, {}


def codex(model):
    provider = f'{{name="scripted", base_url="{model}/v1", wire_api="responses", env_key="SCRIPTED_KEY"}}'
    return ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access",
            "-c", "model=scripted", "-c", "model_provider=scripted",
            "-c", f"model_providers.scripted={provider}", "go"], {"SCRIPTED_KEY": KEY}, {}


def copilot(model):
    return ["-p", "go", "--allow-all"], {
        "COPILOT_PROVIDER_BASE_URL": f"{model}/v1", "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}, {}


def gemini(model):
    # Without a model's name it asks a model which one to take.
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return ["-m", "gemini-2.5-flash", "-p", "go", "--approval-mode=yolo"], {
        "GOOGLE_GEMINI_BASE_URL": model, "GEMINI_API_KEY": KEY, "GEMINI_SANDBOX": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true"}, {".gemini/settings.json": json.dumps(settings)}


def opencode(model):
    provider = {"npm": "@ai-sdk/openai-compatible", "models": {"scripted": {"name": "scripted"}},
                "options": {"baseURL": f"{model}/v1", "apiKey": KEY}}
    return ["run", "-m", "scripted/scripted", "go"], {
        "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"scripted": provider}, "permission": "allow"}),
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}, {}


def pi(model):
    provider = {"baseUrl": f"{model}/v1", "api": "openai-completions", "apiKey": KEY,
                "models": [{"id": "scripted"}]}
    return ["-p", "--provider", "scripted", "--model", "scripted", "go"], {
        "PI_OFFLINE": "1", "PI_CODING_AGENT_DIR": ".pi-agent"}, {
            ".pi-agent/models.json": json.dumps({"providers": {"scripted": provider}})}


DRIVEN = {"claude": claude, "codex": codex, "copilot": copilot, "gemini": gemini, "opencode": opencode,
          "pi": pi}
