/** Keys of records that sort by a time. */

/**
 * The greatest time, ms since the epoch. A cursor begins with the difference between it and the
 * time of the entry, so that ascending cursors are newest first.
 */
export const cursorTimeMaxMs = 9_999_999_999_999

/** Digits of the difference. */
export const cursorTimeDigits = 13

/** The cursor of a resource that was created at a time, ms since the epoch. */
export const cursorOf = (atMs: number, id: string): string =>
  `${String(cursorTimeMaxMs - atMs).padStart(cursorTimeDigits, "0")}.${id}`

/** Digits of the time in a key, so that keys sort by time. */
export const keyTimeDigits = 16

/** The time in a key, which another part follows. */
export const timeInKey = (ms: number): string => String(ms).padStart(keyTimeDigits, "0")
