
// Numbers and times as the reader's language writes them.

const formats = new Map();
function format(number, options) {
  const name = JSON.stringify(options);
  if (!formats.has(name)) formats.set(name, new Intl.NumberFormat(undefined, options));
  return formats.get(name).format(number);
}
const whole = (n) => format(n, { maximumFractionDigits: 0 });
const count = (n) => (n < 1e5 ? whole(n) : format(n, { notation: "compact", maximumSignificantDigits: 3 }));
// Cents; of less than one, the two digits that matter.
const digits = (n) => (Math.abs(n) >= 0.00995 || n === 0 ? 2 : Math.min(1 - Math.floor(Math.log10(Math.abs(n))), 6));
const money = (n, places = digits(n)) =>
  format(n, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", minimumFractionDigits: 2, maximumFractionDigits: places });
const price = (n) => money(n, 6);
function seconds(s) {
  if (s < 0.9995) return format(s * 1000, { style: "unit", unit: "millisecond", maximumFractionDigits: s < 0.0095 ? 1 : 0 });
  if (s < 100) return format(s, { style: "unit", unit: "second", maximumFractionDigits: s < 10 ? 2 : 1 });
  return format(s / 60, { style: "unit", unit: "minute", maximumFractionDigits: 1 });
}
// In what people are billed by, once there is enough of it.
function energy(joules) {
  const [amount, unit] = joules < 3600 ? [joules, "J"] : joules < 3.6e6 ? [joules / 3600, "Wh"] : [joules / 3.6e6, "kWh"];
  return `${format(amount, { maximumSignificantDigits: 3 })}\u00a0${unit}`;
}
// In units of 1024, as the commands show them.
function size(bytes) {
  const units = [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]];
  const [length, unit] = bytes < 1000 ? [1, "B"] : units.findLast(([length]) => bytes / length < 999.5) ?? units[0];
  const places = unit === "GB" ? 1 : 0;
  return `${format(bytes / length, { minimumFractionDigits: places, maximumFractionDigits: places })}\u00a0${unit}`;
}
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
const when = (moment, options) => new Intl.DateTimeFormat(undefined, options).format(new Date(moment));
// As schedules are written, whatever the language.
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const day = { weekday: "short", day: "numeric", month: "short" };
function recently(moment) {
  const sameDay = new Date(moment).toDateString() === new Date().toDateString();
  return when(moment, sameDay ? clock : { day: "numeric", month: "short", ...clock });
}
