/** Buttons of which one is pressed. */
import { Button } from './button.tsx'

interface SwitchProps<Value extends string> {
  legend: string
  /** Each value with its name, where the value alone does not explain itself. */
  options: readonly (readonly [value: Value, name?: string])[]
  value: Value
  onChange(value: Value): void
}

export function Switch<Value extends string>({ legend, options, value, onChange }: SwitchProps<Value>) {
  return (
    <fieldset class="switch">
      <legend class="hidden">{legend}</legend>
      {options.map(([option, name]) => (
        <Button
          text={option.toUpperCase()}
          key={option}
          {...(name && { lang: option, title: name, 'aria-label': `${option.toUpperCase()} ${name}` })}
          aria-pressed={option === value}
          onClick={() => onChange(option)}
        />
      ))}
    </fieldset>
  )
}
