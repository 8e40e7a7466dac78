/** How the files of packages are written into sources: typeface, icons and charts. */

/** The columns of the texts in a made file. */
const columns = 92

/** Bytes in base64, as the lines of a list. */
export const base64Lines = (bytes) =>
  (bytes.toString("base64").match(new RegExp(`.{1,${columns}}`, "g")) ?? [])
    .map((line) => `    "${line}"`).join(",\n")

/** The line in several that are not longer; each ends after a word. */
const wrapped = (line) =>
  line.length <= columns ? line : line.replace(new RegExp(`(.{1,${columns}}) +`, "g"), "$1\n")

/** A license, as the lines of a list. */
export const licenseLines = (text) =>
  text.trimEnd().split("\n").flatMap((line) => wrapped(line.trimEnd()).split("\n"))
    .map((line) => `  ${JSON.stringify(line)},\n`).join("")
