/**
 * The options of curl that the pages type. Each is older than curl 7.74, that of Debian 11: any
 * other option fails the test of transcripts, until somebody looks up its version and adds it here.
 */

/** Their versions: https://curl.se/docs/options-in-versions.html */
const letters = "dDfHiKNosSuwX"

const words: ReadonlySet<string> = new Set([
  "--data",
  "--data-binary",
  /** Of 7.12.3. */
  "--retry",
  /** Of 7.52.0. */
  "--retry-connrefused"
])

/** What `-w` writes; `%header{name}` is of 7.84. */
const variables: ReadonlySet<string> = new Set(["%{http_code}"])

/** The arguments of each curl of a command, with `Q` for a quoted text. */
export const curlsOf = (command: string): ReadonlyArray<ReadonlyArray<string>> => {
  const unquoted = command.replace(/\\\n(?:> )?/g, " ").replace(/'[^']*'/g, "Q")
    .replace(/"(?:[^"\\$]|\\.|\$(?!\())*"/g, "Q")
  return [...unquoted.matchAll(/(?:^|[\s(;&|])curl((?:[ \t]+[^\s|;&)]+)+)/g)]
    .map(([, args = ""]) => args.trim().split(/\s+/))
}

const optionsOf = (argument: string): ReadonlyArray<string> => {
  if (argument.startsWith("--")) return [argument.replace(/=.*/, "")]
  return /^-[A-Za-z#]/.test(argument) ? [...argument.slice(1)].map((one) => `-${one}`) : []
}

const isOld = (option: string): boolean => words.has(option) || letters.includes(option.slice(1))

/** The options and variables of a command that curl 7.74 may not have. */
export const newerThanOldCurl = (command: string): ReadonlyArray<string> => [
  ...curlsOf(command).flat().flatMap(optionsOf).filter((option) => !isOld(option)),
  ...[...command.matchAll(/%[a-z]*\{[^}]*\}/g)].map(([found]) => found)
    .filter((found) => command.includes("curl ") && !variables.has(found))
]
