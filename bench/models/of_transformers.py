# SPDX-License-Identifier: Apache-2.0
"""Models of transformers, from their configurations: text, speech, images."""

import torch

from models.row import Model, Row


def from_config(kind, config, inputs, **sizes):
    """transformers' class `kind`, of a configuration of class `config`. `inputs(config, g)` are named inputs, labels among them."""
    import transformers

    settings = getattr(transformers, config)(**sizes)
    net = getattr(transformers, kind)(settings)
    names = list(inputs(settings, torch.Generator()))

    def batch(g):
        return tuple(inputs(settings, g).values())

    def loss(net, *values):
        return net(**dict(zip(names, values))).loss

    def infer(net, *values):
        return net(**dict(zip(names, values))).logits

    return Model(net, batch, loss, infer)


def tokens(batch, length):
    def inputs(config, g):
        ids = torch.randint(3, config.vocab_size, (batch, length), generator=g)
        return {"input_ids": ids, "labels": ids}

    return inputs


def masked_tokens(batch, length):
    """Sequences of several lengths, filled up, whose last words are not attended to."""

    def inputs(config, g):
        ids = torch.randint(3, config.vocab_size, (batch, length), generator=g)
        lengths = torch.randint(length // 2, length + 1, (batch, 1), generator=g)
        mask = (torch.arange(length) < lengths).long()
        return {"input_ids": ids, "attention_mask": mask, "labels": ids.where(mask == 1, -100)}

    return inputs


def translation(batch, source, target):
    def inputs(config, g):
        words = [torch.randint(3, config.vocab_size, (batch, length), generator=g) for length in (source, target)]
        return {"input_ids": words[0], "labels": words[1]}

    return inputs


def whisper_frames(batch, length):
    def inputs(config, g):
        frames = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, generator=g)
        return {"input_features": frames, "labels": torch.randint(3, config.vocab_size, (batch, length), generator=g)}

    return inputs


def waves(batch, samples, letters):
    def inputs(config, g):
        return {
            "input_values": torch.randn(batch, samples, generator=g),
            "labels": torch.randint(1, config.vocab_size, (batch, letters), generator=g),
        }

    return inputs


def segmented_images(batch, side):
    def inputs(config, g):
        return {
            "pixel_values": torch.randn(batch, 3, side, side, generator=g),
            "labels": torch.randint(config.num_labels, (batch, side, side), generator=g),
        }

    return inputs


def clip(batch, length, **sizes):
    """Texts and images, each to be told from the others of its batch."""
    import transformers

    net = transformers.CLIPModel(transformers.CLIPConfig(**sizes))
    text, vision = net.config.text_config, net.config.vision_config

    def make_batch(g):
        ids = torch.randint(3, text.vocab_size - 1, (batch, length), generator=g)
        ids[:, -1] = text.eos_token_id
        return ids, torch.randn(batch, 3, vision.image_size, vision.image_size, generator=g)

    def loss(net, ids, images):
        return net(input_ids=ids, pixel_values=images, return_loss=True).loss

    return Model(net, make_batch, loss, lambda net, ids, images: net(input_ids=ids, pixel_values=images).logits_per_image)


def row(name, kind, config, small, full, **options):
    """`small` and `full`: the inputs, and what differs from the configuration's own sizes."""

    def sizes(inputs, arguments={}):
        return {"kind": kind, "config": config, "inputs": inputs, **arguments}

    return Row(name, "transformers", from_config, sizes(*small), sizes(*full), **options)


TINY = dict(vocab_size=320, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4)
TINY_DECODER = dict(TINY, num_key_value_heads=2)
BILLION = dict(num_hidden_layers=16, hidden_size=2048, intermediate_size=5632, num_attention_heads=32, num_key_value_heads=8)
HALF_BILLION = dict(num_hidden_layers=12, hidden_size=1536, intermediate_size=4096, num_attention_heads=24, num_key_value_heads=8)
TINY_TEXT = dict(vocab_size=320, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, bos_token_id=318, eos_token_id=319)
TINY_VISION = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=16)
TINY_WHISPER = dict(
    vocab_size=320, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=64, num_mel_bins=80,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
)
# Whole layers are dropped by a number of the host's generator, which is the CPU's own and not another device's.
WAVES = dict(layerdrop=0.0, mask_time_length=2)

ROWS = [
    row("bert", "BertForMaskedLM", "BertConfig", (masked_tokens(2, 32), TINY), (masked_tokens(16, 128),)),
    row("deberta_v2", "DebertaV2ForMaskedLM", "DebertaV2Config",
        (masked_tokens(2, 32), dict(TINY, relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=32)),
        (masked_tokens(8, 256), dict(num_hidden_layers=12, hidden_size=768, intermediate_size=3072, num_attention_heads=12,
                                     relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=256))),
    row("t5", "T5ForConditionalGeneration", "T5Config",
        (translation(2, 24, 16), dict(vocab_size=320, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)),
        (translation(16, 128, 96), dict(decoder_start_token_id=0))),
    row("llama", "LlamaForCausalLM", "LlamaConfig", (tokens(2, 32), TINY_DECODER), (tokens(4, 512), dict(BILLION, vocab_size=32000))),
    row("mistral", "MistralForCausalLM", "MistralConfig", (tokens(2, 32), dict(TINY_DECODER, sliding_window=16)),
        (tokens(4, 512), dict(HALF_BILLION, sliding_window=256))),
    row("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", (tokens(2, 32), TINY),
        (tokens(8, 512), dict(num_hidden_layers=12, hidden_size=768, intermediate_size=3072, num_attention_heads=12))),
    row("mixtral", "MixtralForCausalLM", "MixtralConfig", (tokens(2, 16), dict(TINY_DECODER, num_local_experts=4)),
        (tokens(4, 256), dict(num_hidden_layers=6, hidden_size=768, intermediate_size=2048, num_attention_heads=12,
                              num_key_value_heads=4, num_local_experts=8)), needs_values=True),  # which rows an expert takes
    row("mamba", "MambaForCausalLM", "MambaConfig",
        (tokens(2, 12), dict(vocab_size=320, hidden_size=64, state_size=8, num_hidden_layers=2)),
        (tokens(4, 128), dict(num_hidden_layers=12))),
    row("whisper", "WhisperForConditionalGeneration", "WhisperConfig", (whisper_frames(2, 16), TINY_WHISPER), (whisper_frames(8, 64),)),
    row("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config",
        (waves(2, 4000, 4), dict(TINY, **WAVES, vocab_size=32, conv_dim=(64,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)),
        (waves(8, 80000, 40), WAVES), needs_values=True),
    Row("clip", "transformers", clip, dict(batch=4, length=12, text_config=TINY_TEXT, vision_config=TINY_VISION),
        dict(batch=64, length=77)),
    row("segformer", "SegformerForSemanticSegmentation", "SegformerConfig",
        (segmented_images(2, 64), dict(hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], decoder_hidden_size=64)),
        (segmented_images(8, 512),)),
]
