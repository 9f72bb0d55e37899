"""A support desk's triage agent: an ordinary program on the `openai` package.

It reads one ticket as JSON on stdin, works on it with four tools, and writes the calls that it made into actions.json.
Nothing in it knows of campaigns: a campaign starts it once per rollout and sets OPENAI_BASE_URL, OPENAI_API_KEY and
OPENAI_MODEL.

    echo '{"prompt": "From: ..."}' | OPENAI_BASE_URL=http://127.0.0.1:8300/v1 OPENAI_API_KEY=none python agent.py
"""

import json
import os
import sys
from pathlib import Path

from openai import OpenAI

POLICY = (Path(__file__).parent / "policy.md").read_text()
MAX_TURNS = 6


def tool(name: str, description: str, **parameters: str) -> dict:
    """Returns a tool in OpenAI's form; every parameter is a required string with the given description."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("get_customer", "Returns the customer's plan and last invoice.", email="The customer's email address."),
    tool("route_ticket", "Hands the ticket to a team.", team="One of: network, billing, sales, business."),
    tool("refund_invoice", "Refunds an invoice.", amount="The amount of the last invoice in dollars."),
    tool("decline_refund", "Tells the customer that there is no refund.", reason="The reason, in a few words."),
]


def call_tool(name: str, arguments: dict, customer: dict) -> str:
    """Returns the tool's result as text. Only get_customer reads data; the other tools end the ticket."""
    if name == "get_customer":
        found = arguments.get("email") == customer["email"]
        return json.dumps(customer) if found else "error: no customer has this email address"
    if name in {"route_ticket", "refund_invoice", "decline_refund"}:
        return "ok"
    return f"error: there is no tool {name}"


def main() -> None:
    task = json.load(sys.stdin)
    client = OpenAI(max_retries=0)
    messages = [{"role": "system", "content": POLICY}, {"role": "user", "content": task["prompt"]}]
    actions = []
    for _ in range(MAX_TURNS):
        reply = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "trace"), messages=messages, tools=TOOLS
        )
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            try:
                arguments = json.loads(call.function.arguments)
            except ValueError:
                arguments = {}
            result = call_tool(call.function.name, arguments, task["customer"])
            actions.append({"name": call.function.name, "arguments": arguments})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if actions[-1]["name"] != "get_customer":
            break
    Path("actions.json").write_text(json.dumps(actions))


if __name__ == "__main__":
    main()
