/** Names of accounts and mailboxes. */
import { slugCharsMax } from "./limits.ts"

/** `[a-z0-9][a-z0-9-]*`, at most 64 characters: names of accounts and mailboxes. */
export const isSlug = (text: string): boolean =>
  text.length <= slugCharsMax && /^[a-z0-9][a-z0-9-]*$/.test(text)
