/**
 * The inputs of earlier runs, one file for each target: an array of texts, each character one byte.
 * An input that once broke a parser stays in it for ever.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const fileOf = (target: string): string =>
  fileURLToPath(new URL(`./corpus/${target}.json`, import.meta.url))

export const corpusOf = (target: string): ReadonlyArray<string> =>
  // Written by `keepCorpus`.
  existsSync(fileOf(target))
    ? JSON.parse(readFileSync(fileOf(target), "utf8")) as ReadonlyArray<string>
    : []

export const keepCorpus = (target: string, inputs: ReadonlyArray<string>): void => {
  writeFileSync(fileOf(target), `${JSON.stringify(inputs, undefined, 1)}\n`)
}
