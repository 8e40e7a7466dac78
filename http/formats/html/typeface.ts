/** The typeface of the pages as a file of the service, whose name changes with its content. */
import { createHash } from "node:crypto"
import { interFont } from "./packages/index.ts"

const hexCharacters = 16

const hash = createHash("sha256").update(interFont).digest("hex").slice(0, hexCharacters)

/** Below `/fonts/`. */
export const typefaceName = `inter-${hash}.woff2`

/** The path of the typeface. */
export const typefacePath = `/fonts/${typefaceName}`

/**
 * The rule of the stylesheet. A browser that does not have the typeface when it first paints the
 * page keeps its own for that page, so that text is neither late nor moves. The pages ask for the
 * file before the stylesheet does, and a browser keeps it.
 */
export const typefaceRule = `@font-face{font-family:Inter;font-weight:400 700;
font-display:optional;src:url(${typefacePath}) format("woff2")}
`
