/** The page to which a browser returns after its sign-in: a path of this service, and no other. */
import { parseUrl } from "../../../actors/index.ts"
import { signInPath, signOutPath } from "../../formats/html/index.ts"
import { returnPathCharsMax } from "../../limits.ts"

/** Where a browser goes that came from no page. */
const startPath = "/mailboxes"

/**
 * The path in the field `return`; the start for a missing one, and for one that a browser could
 * read as an address elsewhere (CWE-601): `//host`, `/\host`, or with characters that it drops.
 */
export const returnPathOf = (text: string | undefined, baseUrl: string): string => {
  if (text === undefined || text.length > returnPathCharsMax) return startPath
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes("\\")) return startPath
  const { origin } = new URL(baseUrl)
  const target = parseUrl(text, origin)
  if (target === undefined) return startPath
  const isForm = target.pathname === signInPath || target.pathname === signOutPath
  // The path without dot segments, which could make another `//`.
  return target.origin !== origin || target.pathname.startsWith("//") || isForm
    ? startPath
    : target.pathname + target.search + target.hash
}
