// Ratings of answers. The server learns from them if it chose the model. It rates a call by its id, which a saved answer does not have, so this
// browser remembers the ids of the latest answers.

const RATINGS = [["good", "Good"], ["bad", "Bad"]];
const RATED = "hob-chat-ratings";
const MOST_RATED = 200;

function ratedAnswers() {
  try {
    return listOf(JSON.parse(localStorage.getItem(RATED)));
  } catch {
    return [];
  }
}

function keepRating(entry) {
  try {
    const others = ratedAnswers().filter(({ turn }) => turn !== entry.turn);
    localStorage.setItem(RATED, JSON.stringify([...others, entry].slice(-MOST_RATED)));
  } catch {
    // The answer can then be rated until the page is closed.
  }
}

function keepCompletion(rated, turn) {
  const { completion, ending } = turn.answer;
  const name = turnName(rated, turn);
  // It may be rated already.
  if (turn.id === null || completion === "" || ending !== "complete" || ratedAnswers().some((one) => one.turn === name)) return;
  keepRating({ turn: name, completion, rating: "" });
}

// The two buttons of an answer.
class RatingView {
  #chat;
  #turn;
  #buttons;
  #busy = false;
  #given = "";

  // `rated` is called with the rating if the server accepted it, `failed` with a `ChatError` if not.
  constructor(rated, turn, { rated: accepted, failed }) {
    this.#chat = rated;
    this.#turn = turn;
    this.#buttons = RATINGS.map(([rating, label]) =>
      Object.assign(smallButton(label, () => this.#press(rating, accepted, failed)), { ariaLabel: `${label} answer`, value: rating }));
    this.root = node("span", { className: "rating", role: "group", ariaLabel: "Rate this answer" }, ...this.#buttons);
  }

  // Only complete answers whose call is known can be rated.
  update() {
    this.root.hidden = stateOf(this.#turn) !== "complete";
    if (this.root.hidden) return;
    const known = this.#known();
    this.root.hidden = known.completion === "";
    for (const button of this.#buttons) button.ariaPressed = String(button.value === (this.#given || known.rating));
  }

  #known() {
    const name = turnName(this.#chat, this.#turn);
    const kept = this.#turn.id === null ? undefined : ratedAnswers().find(({ turn }) => turn === name);
    return { completion: this.#turn.answer?.completion || textOf(kept?.completion), rating: textOf(kept?.rating) };
  }

  async #press(rating, accepted, failed) {
    const { completion } = this.#known();
    if (this.#busy || this.#given === rating) return;
    this.#busy = true;
    try {
      await callStore("POST", "v1/feedback", { id: completion, rating });
      this.#given = rating;
      if (this.#turn.id !== null) keepRating({ turn: turnName(this.#chat, this.#turn), completion, rating });
      this.update();
      accepted(rating);
    } catch (error) {
      failed(error);
    } finally {
      this.#busy = false;
    }
  }
}
