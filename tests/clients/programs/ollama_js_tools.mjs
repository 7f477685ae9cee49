import { Ollama } from 'ollama'

const client = new Ollama({ host: process.env.OLLAMA_HOST ?? 'http://localhost:8000' })
const boilerPressure = {
  type: 'function',
  function: {
    name: 'boiler_pressure',
    description: 'The pressure in the boiler.',
    parameters: { type: 'object', properties: {}, required: [] },
  },
}
const messages = [{ role: 'user', content: 'What is the pressure in the boiler?' }]
const asked = await client.chat({ model: 'default', messages, tools: [boilerPressure] })
messages.push(asked.message)
for (const call of asked.message.tool_calls) {
  messages.push({ role: 'tool', tool_name: call.function.name, content: '1.5 bar' })
}
const answer = await client.chat({ model: 'default', messages, tools: [boilerPressure] })
console.log(answer.message.content)
