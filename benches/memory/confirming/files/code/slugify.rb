# Turns titles into addresses: "Crème brûlée, twice!" becomes "creme-brulee-twice".
module Slugify
  MAX_LENGTH = 80
  REPLACEMENTS = { "ß" => "ss", "æ" => "ae", "ø" => "o", "&" => " and " }.freeze

  # Words are never cut in the middle, unless the very first is too long by itself.
  def self.call(title)
    text = REPLACEMENTS.reduce(title.downcase) { |memo, (from, to)| memo.gsub(from, to) }
    text = text.unicode_normalize(:nfd).gsub(/\p{Mn}/, "")
    slug = text.scan(/[a-z0-9]+/).join("-")
    return slug if slug.length <= MAX_LENGTH
    cut = slug[0, MAX_LENGTH + 1].rpartition("-").first
    cut.empty? ? slug[0, MAX_LENGTH] : cut
  end

  # Appends -2, -3 and so on until nobody else has it. The block says whether an address is taken.
  def self.unique(title, &taken)
    base = call(title)
    return base unless taken.call(base)
    (2..).lazy.map { |number| "#{base}-#{number}" }.find { |candidate| !taken.call(candidate) }
  end
end
