// What an answer took and saved: tokens, speed, and the price at the cheapest cloud provider.

let prices = null; // of a million tokens; null if this caller may not see them

const figure = (number) => format(number, { maximumSignificantDigits: 3 });

async function lookForPrices() {
  if (document.body.dataset.role !== "owner" || prices !== null) return;
  const answer = await askServer("v1/savings");
  const offers = answer?.status === 200 ? listOf(answer.body?.per_provider) : [];
  prices = offers.map((one) => ({ label: one.label, input: Number(one.input_price), output: Number(one.output_price) }))
    .sort((one, other) => one.input + one.output - other.input - other.output)[0] ?? null;
  for (const { answer: view } of views.values()) view.update();
}

// Such as "128 tokens · 42 tokens/s · saved $0.0012".
function figuresOf({ model, usage, warnings }) {
  if (usage === null) return "";
  const { prompt_tokens: read, completion_tokens: written, seconds: took } = usage;
  const speed = took > 0 && written > 0 ? `${figure(written / took)} tokens/s` : "";
  const isLocal = listedModels.has(model) && listedModels.get(model).engine !== "cloud" && !warnings.includes("cloud-fallback");
  const worth = prices !== null && isLocal ? (read * prices.input + written * prices.output) / 1e6 : 0;
  const saved = worth > 0 ? `saved ${money(worth)} (${prices.label})` : "";
  return [plural(read, "token read", "tokens read"), plural(written, "written", "written"), speed, saved].filter(Boolean).join(" · ");
}
