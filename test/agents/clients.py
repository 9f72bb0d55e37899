"""Asks the cases that come on stdin with the official client, and writes what it hears as test/agents/clients.ts does for Node's."""

import json
import sys

import openai


def heard(case: dict) -> dict:
    client = openai.OpenAI(
        base_url=case["url"],
        api_key=case["key"],
        max_retries=0,
        timeout=case.get("seconds", 60),
    )
    completions = client.chat.completions
    try:
        if case["streamed"]:
            with completions.stream(
                **case["body"], stream_options={"include_usage": True}
            ) as stream:
                completion = stream.get_final_completion()
        else:
            completion = completions.create(**case["body"])
    except openai.LengthFinishReasonError as cut:  # of the helper: the stream is whole
        completion = cut.completion
    except openai.APITimeoutError:
        return {"error": "timeout"}
    except openai.APIStatusError as error:
        return {
            "error": {
                "status": error.status_code,
                "code": error.code,
                "param": error.param,
                "type": error.type,
            }
        }
    (choice,) = completion.choices
    return {
        "content": choice.message.content or "",
        "calls": [
            {
                "id": call.id,
                "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in choice.message.tool_calls or []
        ],
        "finish": choice.finish_reason,
        "logprobs": bool(choice.logprobs and choice.logprobs.content),
        "usage": bool(completion.usage and completion.usage.total_tokens),
    }


json.dump([heard(case) for case in json.load(sys.stdin)], sys.stdout)
