/** Files of packages that are a part of the program, as `deploy/generate` makes them. */
export { interFont, interLicense } from "./inter.ts"
export { iconShapes, iconsLicense } from "./lucide.ts"
export { normalizeLicense, normalizeRules } from "./normalize.ts"
