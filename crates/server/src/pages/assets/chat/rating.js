// Ratings of answers. The server learns from them if it chose the model.

const RATINGS = [["good", "Good"], ["bad", "Bad"]];
const RATE_MS = 10_000;

// Sends a rating. Throws a `ChatError` if the server does not accept it.
async function rate(id, rating, headers) {
  let answer;
  try {
    answer = await fetch("v1/feedback", {
      method: "POST",
      cache: "no-store",
      credentials: "same-origin",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ id, rating }),
      signal: AbortSignal.timeout(RATE_MS),
    });
  } catch {
    throw new ChatError("away", "Hob does not answer, so the rating is not saved.");
  }
  if (!answer.ok) throw await refusal(answer);
}

// The two buttons of an answer.
class RatingView {
  #message;
  #buttons;
  #busy = false;

  // `rated` is called with the message if the server accepted it, `failed` with a `ChatError` if not.
  constructor(message, { rated, failed }) {
    this.#message = message;
    this.#buttons = RATINGS.map(([rating, label]) =>
      Object.assign(smallButton(label, () => this.#press(rating, rated, failed)), { ariaLabel: `${label} answer`, value: rating }));
    this.root = node("span", { className: "rating", role: "group", ariaLabel: "Rate this answer" }, ...this.#buttons);
  }

  // Only complete answers with an id can be rated.
  update() {
    const { id, state, rating } = this.#message;
    this.root.hidden = state !== "complete" || id === "";
    for (const button of this.#buttons) button.ariaPressed = String(button.value === rating);
  }

  async #press(rating, rated, failed) {
    if (this.#busy || this.#message.rating === rating) return;
    this.#busy = true;
    try {
      await rate(this.#message.id, rating, keyHeaders());
      this.#message.rating = rating;
      this.update();
      rated(this.#message);
    } catch (trouble) {
      failed(trouble);
    } finally {
      this.#busy = false;
    }
  }
}
