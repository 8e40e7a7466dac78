/** Finds what a document has and its schema has not: a misspelled setting must not be ignored. */
import { childrenOf, type Element } from "../xml/index.ts"
import { isAttribute, isElement, type Properties, type Schema, textProperty } from "./schema.ts"

/** A schema of an object; `object` makes each. */
interface ObjectSchema extends Schema {
  readonly properties: Properties
  readonly additionalProperties: boolean
}

const isObjectSchema = (schema: Schema): schema is ObjectSchema => "properties" in schema

/** A text, or a number, which documents write as text. */
const isTextSchema = ({ type }: Schema): boolean =>
  [type].flat().some((one) => one === "string" || one === "number" || one === "integer")

/** The schemas that an element may have: by reference, in a list, or of a choice. */
const alternativesOf = (schema: Schema, schemas: Properties): ReadonlyArray<Schema> => {
  const { $ref: reference, anyOf, items } = schema
  const name = String(reference ?? "").split("/").at(-1) ?? ""
  const named = schemas[name]
  // The functions of `schema.ts` make these values.
  const inner = [named, items, ...Array.isArray(anyOf) ? anyOf : []]
    .filter((one): one is Schema => one !== undefined)
  return inner.length === 0 ? [schema] : inner.flatMap((one) => alternativesOf(one, schemas))
}

/** Whether an element may hold text of its own. */
const holdsText = (schema: Schema): boolean =>
  isObjectSchema(schema)
    ? Object.hasOwn(schema.properties, textProperty)
    : schema["maxLength"] !== 0

/** Whether an element may come more than once. */
const isRepeatable = ({ anyOf, type }: Schema): boolean =>
  type === "array" || (Array.isArray(anyOf) && anyOf.some(isRepeatable))

const isOpen = (schema: Schema): boolean =>
  isObjectSchema(schema) ? schema.additionalProperties : !isTextSchema(schema)

/** Attributes of XML itself, which any element may have. */
const isXmlAttribute = (name: string): boolean => /^(?:xmlns$|xmlns:|xml:)/.test(name)

const withArticle = (name: string): string => `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`

/** Characters of an unknown name in a message. */
const nameShownMax = 40

const shown = (name: string): string => name.slice(0, nameShownMax)

/** The properties of one kind that a client may send, by their names. */
const namesOf = (
  objects: ReadonlyArray<ObjectSchema>,
  isKind: (schema: Schema) => boolean
): ReadonlyArray<string> => {
  const names = objects.flatMap(({ properties }) =>
    Object.keys(properties).filter((name) => {
      const schema = properties[name] ?? {}
      return name !== textProperty && isKind(schema) && schema["readOnly"] !== true
    })
  )
  return [...new Set(names)]
}

/** The schemas that the objects have for an attribute or element of this name. */
const propertiesOf = (
  objects: ReadonlyArray<ObjectSchema>,
  name: string,
  isKind: (schema: Schema) => boolean
): ReadonlyArray<Schema> =>
  objects.flatMap(({ properties }) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    return schema === undefined || name === textProperty || !isKind(schema) ? [] : [schema]
  })

/** What is in the element and not in its schema, with what it may have in place of that. */
const faultOf = (node: Element, unknown: string, known: ReadonlyArray<string>): string =>
  `${withArticle(node.name)} has no ${unknown}: ` +
  (known.length === 0 ? "remove it" : `it may have ${known.join(", ")}`)

const attributeFault = (
  objects: ReadonlyArray<ObjectSchema>,
  node: Element
): string | undefined => {
  const unknown = Object.keys(node.attributes).find((name) =>
    !isXmlAttribute(name) && propertiesOf(objects, name, isAttribute).length === 0
  )
  if (unknown === undefined) return undefined
  return faultOf(node, `attribute ${shown(unknown)}`, namesOf(objects, isAttribute))
}

/**
 * What is wrong with a document by its schema; undefined for nothing, and where the schema is open.
 * `schemas` are those that it may refer to.
 */
export const documentFault = (
  schema: Schema,
  schemas: Properties,
  node: Element
): string | undefined => {
  const alternatives = alternativesOf(schema, schemas)
  if (alternatives.some(isOpen)) return undefined
  const objects = alternatives.filter(isObjectSchema)
  const fault = attributeFault(objects, node)
  if (fault !== undefined) return fault
  const elements = namesOf(objects, isElement)
  const hasText = node.children.some((child) => typeof child === "string" && /\S/.test(child))
  if (hasText && !alternatives.some(holdsText)) {
    return faultOf(node, "text of its own", elements)
  }
  const single = new Set<string>()
  for (const child of childrenOf(node)) {
    const { name } = child
    const anyOf = propertiesOf(objects, name, isElement)
    if (anyOf.length === 0) {
      return faultOf(node, `element ${shown(name)}`, elements)
    }
    if (single.has(name)) return `${withArticle(node.name)} has one ${name} only: remove the others`
    if (!anyOf.some(isRepeatable)) single.add(name)
    const inner = documentFault({ anyOf }, schemas, child)
    if (inner !== undefined) return inner
  }
  return undefined
}
