/** Durations of ISO 8601, as settings hold them. */

const dayMs = 86_400_000

const pattern =
  /^P(?!$)(?:(\d+)W|(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?)$/

/** The ms of a week, a year, a month, a day, an hour, a minute and a second. */
const unitsMs = [7 * dayMs, 365 * dayMs, 30 * dayMs, dayMs, 3_600_000, 60_000, 1000]

/** Longest duration that is read, so that no time of day overflows. */
export const durationMaxMs = 100 * 365 * dayMs

/** ms of a duration such as `P30D`, years of 365 and months of 30 days; undefined if it is none. */
export const parseDuration = (text: string): number | undefined => {
  const parts = pattern.exec(text)
  if (parts === null) return
  const ms = unitsMs.reduce((sum, unitMs, at) => sum + unitMs * Number(parts[at + 1] ?? 0), 0)
  return ms <= durationMaxMs ? ms : undefined
}
