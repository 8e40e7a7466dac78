/** Reading the JSON of answers: documents as the service writes them, where numbers are texts. */
import { UnexpectedAnswer } from "./errors.ts"

/** A document as JSON: elements and attributes are properties, what may repeat is an array. */
export type Json = string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

/** Throws: the answer is none of restante's. */
export const unexpected = (what: string): never => {
  throw new UnexpectedAnswer(`the answer is not understood: ${what}`)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The object that a text holds. */
export const parseObject = (text: string): JsonObject => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return unexpected("it is no JSON")
  }
  // Of restante's documents all is text, lists and objects; readers below check what they read.
  return isRecord(value) ? value as JsonObject : unexpected("it is no object")
}

/** The text of a property, or of an element that has attributes too. */
export const optionalText = (object: JsonObject, name: string): string | undefined => {
  const value = object[name]
  if (typeof value === "string") return value
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  return isRecord(value) ? optionalText(value as JsonObject, "#text") : undefined // as parseObject
}

export const textOf = (object: JsonObject, name: string): string =>
  optionalText(object, name) ?? unexpected(`there is no ${name}`)

export const optionalNumber = (object: JsonObject, name: string): number | undefined => {
  const text = optionalText(object, name)
  if (text === undefined) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number : unexpected(`${name} is no number`)
}

export const numberOf = (object: JsonObject, name: string): number =>
  optionalNumber(object, name) ?? unexpected(`there is no ${name}`)

export const optionalObject = (object: JsonObject, name: string): JsonObject | undefined => {
  const value = object[name]
  return isRecord(value) ? value as JsonObject : undefined // as parseObject
}

export const objectOf = (object: JsonObject, name: string): JsonObject =>
  optionalObject(object, name) ?? unexpected(`there is no ${name}`)

/** The objects of a list; none where it is not there. */
export const listOf = (object: JsonObject, name: string): ReadonlyArray<JsonObject> => {
  const value = object[name] ?? []
  const list: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  return list.map((one) =>
    isRecord(one) ? one as JsonObject : unexpected(`${name} holds no objects`) // as parseObject
  )
}

/** One of these words. */
export const wordOf = <Word extends string>(
  object: JsonObject,
  name: string,
  words: ReadonlyArray<Word>
): Word => {
  const text = textOf(object, name)
  return words.find((word) => word === text) ?? unexpected(`${name} is ${text}`)
}

/** The properties that are not undefined. */
export const defined = <Given extends object>(
  given: Given
): { readonly [Name in keyof Given]?: Exclude<Given[Name], undefined> } =>
  // Entries that are left have their values.
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    readonly [Name in keyof Given]?: Exclude<Given[Name], undefined>
  }
