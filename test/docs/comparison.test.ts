/** docs/comparison.md: the figures of restante, its default settings, and gaps that are closed. */
import { Result } from "effect"
import { expect, it } from "vitest"
import { answerSampleBytesMax, attemptsKeptMax, deduplicationWindowItems, deliveryLimits,
  failingMaxMs, idempotencyRetentionMs, recipientAttemptsKeptMax } from "../../actors/limits.ts"
import { loadSettings } from "../../deploy/settings/settings.ts"
import { searchScannedMax } from "../../http/limits.ts"
import { textOf } from "./pages.ts"

const page = textOf("docs/comparison.md")
const hourMs = 3_600_000
const { settings } = Result.getOrThrow(loadSettings({}))
const { documentBytesMax, retrySchedule } = settings
const scheduleHours = Math.round(retrySchedule.reduce((sum, ms) => sum + ms, 0) / hourMs)
const words: Readonly<Record<number, string>> = { 8: "eight" }

it.each([
  `the last ${attemptsKeptMax} attempts with both sides' headers and the answer, and test pushes`,
  `for each recipient the last ${recipientAttemptsKeptMax} attempts`,
  `the first ${answerSampleBytesMax / 1024} KiB`,
  `the last ${deduplicationWindowItems.toLocaleString("en")} deposits`,
  `with \`Idempotency-Key\` for ${idempotencyRetentionMs / hourMs} hours`,
  `${retrySchedule.length} attempts in ${scheduleHours} hours (\`RETRY_SCHEDULE\`)`,
  `${failingMaxMs / (24 * hourMs)} days for pushes`,
  `reads the log, ${searchScannedMax.toLocaleString("en")} notifications for each page`,
  `up to ${documentBytesMax / 1024} KiB; templates`,
  `An origin gets ${words[deliveryLimits.perOriginMax]} attempts at a time`
])("has the figure of the code: %s", (figure) => {
  expect(page).toContain(figure)
})

it.each([
  ["the icon of the installed pages has a count", /a dot and no count/],
  ["an attempt of a relay that succeeded has headers and answer", /neither headers nor the answer/]
])("lists no gap that is closed: %s", (_, gap) => {
  expect(page).not.toMatch(gap)
})

it.each([
  "Quotas and rate limits are the same for all accounts",
  "those of the node that answers"
])("admits a gap: %s", (gap) => {
  const [, gaps = ""] = page.split("## What restante lacks\n")
  expect(gaps).toContain(gap)
})
