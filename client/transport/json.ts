/** Reads JSON documents of the service. All values in them are strings, numbers too. */
import { UnexpectedAnswer } from "./errors.ts"

/** Part of a document: elements and attributes are properties, repeatable elements arrays. */
export type Json = string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

/** Throws UnexpectedAnswer. */
export const unexpected = (what: string): never => {
  throw new UnexpectedAnswer(`the answer is not understood: ${what}`)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Parses a document; throws UnexpectedAnswer when it is not a JSON object. */
export const parseObject = (text: string): JsonObject => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return unexpected("it is no JSON")
  }
  // restante's documents have only strings, arrays and objects; the readers below check types.
  return isRecord(value) ? value as JsonObject : unexpected("it is no object")
}

/** The text of a property, or of an element with attributes. */
export const optionalText = (object: JsonObject, name: string): string | undefined => {
  const value = object[name]
  if (typeof value === "string") return value
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  return isRecord(value) ? optionalText(value as JsonObject, "text") : undefined // as parseObject
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

/** The objects of a list; empty when the property is missing. */
export const listOf = (object: JsonObject, name: string): ReadonlyArray<JsonObject> => {
  const value = object[name] ?? []
  const list: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  return list.map((one) =>
    isRecord(one) ? one as JsonObject : unexpected(`${name} holds no objects`) // as parseObject
  )
}

/** A property that must be one of these words. */
export const wordOf = <Word extends string>(
  object: JsonObject,
  name: string,
  words: ReadonlyArray<Word>
): Word => {
  const text = textOf(object, name)
  return words.find((word) => word === text) ?? unexpected(`${name} is ${text}`)
}

/** The properties that are not undefined. */
export const defined = <Fields extends object>(
  fields: Fields
): { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } =>
  // Every remaining entry has a value.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
