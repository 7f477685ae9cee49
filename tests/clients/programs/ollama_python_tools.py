import ollama


def boiler_pressure() -> str:
    """The pressure in the boiler."""
    return "1.5 bar"


messages = [{"role": "user", "content": "What is the pressure in the boiler?"}]
asked = ollama.chat(model="default", messages=messages, tools=[boiler_pressure])
messages.append(asked.message)
for call in asked.message.tool_calls or []:
    result = {"boiler_pressure": boiler_pressure}[call.function.name](**call.function.arguments)
    messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
print(ollama.chat(model="default", messages=messages, tools=[boiler_pressure]).message.content)
