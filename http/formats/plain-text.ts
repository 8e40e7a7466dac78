/** Any document as plain text: one line for each value, indented by depth. */
import type { Element } from "./xml/index.ts"

const indent = "  "

const writeNode = (node: Element, depth: number, lines: Array<string>): void => {
  const margin = indent.repeat(depth)
  const text = node.children.filter((child) => typeof child === "string").join("").trim()
  const indented = text.includes("\n") ? text.replace(/\r?\n/g, `\n${margin}${indent}`) : text
  lines.push(`${margin}${node.name}:${indented === "" ? "" : ` ${indented}`}`)
  for (const key in node.attributes) {
    if (!key.startsWith("xmlns")) lines.push(`${margin}${indent}${key}: ${node.attributes[key]}`)
  }
  for (const child of node.children) {
    if (typeof child !== "string") writeNode(child, depth + 1, lines)
  }
}

/** The text of a document; it ends with a line feed. */
export const toText = (root: Element): string => {
  const lines: Array<string> = []
  writeNode(root, 0, lines)
  return `${lines.join("\n")}\n`
}
