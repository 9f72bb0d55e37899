"""Writes tasks.jsonl: tickets of a support desk with the call that ends each of them.

Train and test customers differ. The file is the same on every run.

    python make_tasks.py > tasks.jsonl
"""

import json
import random

FIRST = (
    "Ada Ben Carla David Elena Farid Grace Hugo Ines Jonas Kira Liam Mona Nils Olga Paul Rosa Sven Tara Umar"
).split()
LAST = (
    "Archer Bauer Costa Duarte Evans Fischer Garcia Hansen Ivanov Jensen Keller Lopez Moreau Novak Olsen Peters"
).split()
TEXTS = {
    "network": [
        "My internet has been down since this morning. The router's light is red. Please help.",
        "The connection is very slow in the evening. Films stop every few minutes.",
        "I lose the connection several times an hour. I already restarted the router.",
        "Nothing loads any more, on any of my devices. When will it work again?",
    ],
    "billing": [
        "I do not understand my last invoice. What is the item called service fee?",
        "Why is this month's invoice higher than the one before?",
        "Could you tell me when the next invoice is due and how I can pay it?",
        "My company name is missing on the invoice. Can you explain how to correct it?",
    ],
    "sales": [
        "I would like to change to a faster plan. What do you offer?",
        "We are moving and need a contract for the new flat. How do I order one?",
        "A friend has television with his connection. I want that too.",
        "Please send me an offer for a plan with a fixed address.",
    ],
    "refund": [
        "I was on holiday and did not use the connection. I want my last invoice refunded.",
        "Please give me back the money for my last invoice. I am not happy with the service.",
        "I would like a refund of the last invoice.",
        "The last invoice should be refunded, since the connection did not work well.",
    ],
}


def make_task(rng: random.Random, n: int, split: str) -> dict:
    """Returns one line of tasks.jsonl.

    `prompt` is the ticket, `customer` the result of get_customer, and `expected` the call that ends the ticket.
    """
    # Test customers have last names of their own.
    last = rng.choice(LAST[:11] if split == "train" else LAST[11:])
    first = rng.choice(FIRST)
    email = f"{first}.{last}{rng.randrange(10, 100)}@example.com".lower()
    topic = rng.choice(["network", "billing", "sales", "refund", "refund"])
    plan = "business" if rng.random() < 0.25 else "home"
    days = rng.randrange(2, 29) if rng.random() < 0.6 else rng.randrange(35, 90)
    amount = f"{rng.randrange(19, 90)}.{rng.choice(['00', '50', '90'])}"
    customer = {
        "email": email,
        "name": f"{first} {last}",
        "plan": plan,
        "last_invoice": {"amount": amount, "days_old": days},
    }
    if plan == "business":
        kind, expected = "business", {"name": "route_ticket", "arguments": {"team": "business"}}
    elif topic != "refund":
        kind, expected = topic, {"name": "route_ticket", "arguments": {"team": topic}}
    elif days <= 30:
        kind, expected = "refund", {"name": "refund_invoice", "arguments": {"amount": amount}}
    else:
        kind, expected = "old invoice", {"name": "decline_refund", "arguments": {}}
    prompt = f"From: {first} {last} <{email}>\n\n{rng.choice(TEXTS[topic])}"
    return {
        "id": f"{split}-{n}",
        "split": split,
        "groups": [kind],
        "prompt": prompt,
        "customer": customer,
        "expected": expected,
    }


def main() -> None:
    rng = random.Random(1)
    for split, count in (("train", 240), ("test", 120)):
        for n in range(count):
            print(json.dumps(make_task(rng, n, split)))


if __name__ == "__main__":
    main()
