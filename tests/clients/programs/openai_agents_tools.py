from agents import Agent, Runner, function_tool


@function_tool
def boiler_pressure() -> str:
    """The pressure in the boiler."""
    return "1.5 bar"


agent = Agent(name="Caretaker", model="default", instructions="Answer with facts.", tools=[boiler_pressure])
print(Runner.run_sync(agent, "What is the pressure in the boiler?").final_output)
