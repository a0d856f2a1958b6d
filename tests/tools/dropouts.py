#!/usr/bin/env python3
"""Makes tests/data/dropouts.json: the dropouts of transformers in a training step, for the models of families.py.

Each model has a different probability for each key of its configuration. It runs once after model.train(). The file
lists all calls of torch.nn.functional.dropout, and of attention with a dropout_p, in order: the module that calls
("transformer.h.0.attn.resid_dropout"), the probability, and the number of elements. Attention always names its own
module, also if a function or a module inside it drops the weights.
README.md has the versions.
"""

import json
import pathlib
import tempfile

import torch
import transformers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
BATCH, SEQUENCE = 2, 10
KEYS = ["attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout", "dropout", "residual_dropout",
        "embedding_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"]
NAMES = ["llama", "mistral", "ministral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi", "phi3", "gpt2", "opt",
         "opt-350m", "gpt_neox", "gpt_neox-sequential", "falcon", "falcon-40b", "falcon-11b", "falcon-rw",
         "falcon-multi-head", "falcon-sequential", "bloom", "starcoder2", "olmo2", "cohere", "granite", "smollm3",
         "mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v3", "bert", "bert-classification", "roberta",
         "roberta-classification"]


def attention_of(config):
    eager = config.get("attn_logit_softcapping") or config["model_type"] in ("gpt_oss", "gemma2", "bloom")
    return "eager" if eager else "sdpa"


def with_dropout(config):
    """Different probabilities, exact in binary, so that equal values cannot occur by chance. RoBERTa's classifier does
    not have its own."""
    has_own = config["architectures"][0] == "BertForSequenceClassification"
    known = transformers.AutoConfig.for_model(config["model_type"]).to_dict()
    changed, number = dict(config), 0
    for key in KEYS:
        if key not in known or (key == "classifier_dropout" and not has_own):
            continue
        number += 1
        changed[key] = number / 16
    return changed


class Calls:
    """The module whose code runs, and its dropout."""

    def __init__(self, model):
        self.paths, self.found = [], []
        for path, module in model.named_modules():
            module.register_forward_pre_hook(lambda *_, path=path: self.paths.append(path))
            module.register_forward_hook(lambda *_: self.paths.pop() and None, always_call=True)

    def note(self, probability, elements, is_attention):
        path = self.paths[-1]
        if is_attention and isinstance(self.modules[path], torch.nn.Dropout):
            path = path.rpartition(".")[0]
        self.found.append([path, probability, elements])

    def run(self, model, inputs):
        self.modules = dict(model.named_modules())
        functional = torch.nn.functional
        drop, attend = functional.dropout, functional.scaled_dot_product_attention

        def dropout(x, p=0.5, training=True, inplace=False):
            if training and p > 0:
                self.note(p, x.numel(), x.dim() == 4)
            return drop(x, p, training, inplace)

        def attention(query, key, value, *args, dropout_p=0.0, **options):
            if dropout_p > 0:
                self.note(dropout_p, query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2], True)
            return attend(query, key, value, *args, dropout_p=dropout_p, **options)

        functional.dropout, functional.scaled_dot_product_attention = dropout, attention
        try:
            model(**inputs)
        finally:
            functional.dropout, functional.scaled_dot_product_attention = drop, attend
        return self.found


def config_of(name):
    if name == "ministral":  # does not have its own folder
        return dict(config_of("mistral"), model_type=name, architectures=["MinistralForCausalLM"])
    return json.loads((DATA / "families" / name / "config.json").read_text())


def placed(name):
    config = with_dropout(config_of(name))
    with tempfile.TemporaryDirectory() as where:
        (pathlib.Path(where) / "config.json").write_text(json.dumps(config))
        read = transformers.AutoConfig.from_pretrained(where)
    model_class = getattr(transformers, config["architectures"][0])
    model = model_class._from_config(read, attn_implementation=attention_of(config)).train()
    calls = Calls(model)
    inputs = {"input_ids": torch.arange(BATCH * SEQUENCE).reshape(BATCH, SEQUENCE) % 50 + 4}
    return {"name": name, "config": config, "dropouts": calls.run(model, inputs)}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lines = ",\n".join(json.dumps(placed(name)) for name in NAMES)
    (DATA / "dropouts.json").write_text(
        f'{{"batch": {BATCH}, "sequence": {SEQUENCE}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
