/** How the made files of the sources break the lines of a license. */

/** The columns of the texts in a made file. */
export const columns = 92

/** The line in several that are not longer; each ends after a word. */
export const wrapped = (line) => {
  const text = line.trimEnd()
  return text.length <= columns
    ? [text]
    : text.replace(new RegExp(`(.{1,${columns}}) +`, "g"), "$1\n").split("\n")
}
